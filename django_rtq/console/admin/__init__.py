"""The admin pages: pages handle requests, display formats values."""
