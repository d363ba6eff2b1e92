"""The Common Expression Language as the API server and the scheduler run it.

    lexer → parser, macros → syntax → check, types → program, operators, folds, functions, library

``environment`` joins them; ``dra`` and ``terms`` are the selectors of devices. What is not known or
cannot be evaluated here is said (``Unsure``, ``NotEvaluable``), never guessed.
"""
