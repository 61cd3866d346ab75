"""What happens because time has passed."""
