"""The API server, read only: connection, lists, objects, what happened, server-side dry runs.

``connection`` alone imports the ``kubernetes`` package, and only once a cluster is asked.
"""
