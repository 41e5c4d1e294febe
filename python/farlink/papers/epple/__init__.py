"""B. Epple: protocols over free-space optical links, and what the equations of its section 3.3 leave out."""
