"""Deferred verifications: judged in the background, and decided before the script sees a result.

A deferred verification records its prerequisites when the script calls it: decided ones count as they are,
pending ones are awaited, and later ones do not exist for it. So the tree is that of sequential execution.
Where the script reads or changes something that depends on pending verdicts, it waits for them, in plain
functions as well (``waiting``). While work that the script started itself is not done, nothing is deferred
(``own_work``).
"""
