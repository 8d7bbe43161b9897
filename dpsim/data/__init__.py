"""From files to blocks of users."""
