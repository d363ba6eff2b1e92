"""What pasted event and error texts mean: cause, whose move it is, the next command.

One module per speaker, each a table of texts and their readings; ``reading.read`` asks them all.
Knows
no cluster: a text is all that it has.
"""
