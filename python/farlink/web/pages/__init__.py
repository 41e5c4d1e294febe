"""The pages, a file each. They show what `farlink.web.data` gives, and hold no state of their own."""
