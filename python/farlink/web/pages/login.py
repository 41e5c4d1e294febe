"""The page of the login: plain HTML, so that nothing else is served before somebody is in."""

from __future__ import annotations

from html import escape

from farlink.web.access.guard import LOGIN, STYLE


def login_page(said: str = "", to: str = "/") -> str:
    """HTML of the page.

    Parameters
    ----------
    said
        Why somebody is not in yet.
    to
        Where the login leads.
    """
    error = f'<p class="error" role="alert" id="said"><strong>Error:</strong> {escape(said)}</p>' if said else ""
    described = ' aria-describedby="said"' if said else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in - farlink</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{STYLE}"></head>
<body><main class="login"><h1>farlink</h1>{error}
<form method="post" action="{LOGIN}"><input type="hidden" name="next" value="{escape(to)}">
<p><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required autofocus{described}></p>
<p><button class="button main">Log in</button></p></form></main></body></html>
"""


def local(to: str) -> str:
    r"""Where a login leads: a page of this site, whatever the address says.

    Examples
    --------
    >>> local("/fit?line=a"), local("//evil.example"), local("/\\evil"), local("https://evil.example")
    ('/fit?line=a', '/', '/', '/')
    """
    is_ours = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() and to.isascii()
    return to[:500] if is_ours else "/"
