"""Access to the dashboard: the password, logins, and requests that are let through."""
