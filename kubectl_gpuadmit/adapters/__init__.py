"""Everything that touches the outside: files now, the API server and node interfaces later."""
