"""`farlink web`: the dashboard of bundles, a process beside their operators.

`data` asks operators and reads journals, without NiceGUI; `access` says who may come in; `pages` are what is seen; `server`
joins them.
"""
