"""The plugin ``cluster``: Ray, PostgreSQL and object stores."""
