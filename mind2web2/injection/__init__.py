"""Texts that try to talk to the judge: what cannot be seen in them, what gives them away, and a suite of them."""
