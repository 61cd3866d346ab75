"""The admin pages: pages handle requests, the modules beside them format values."""
