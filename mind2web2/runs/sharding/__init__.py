"""An evaluation in parts on several machines: which part judges an answer, and the merge of their results."""
