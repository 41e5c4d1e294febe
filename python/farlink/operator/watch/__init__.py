"""An operator watched from outside: metrics, an API over HTTP, reports; by another process, which ends no bundle."""
