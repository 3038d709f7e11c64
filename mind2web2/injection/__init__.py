"""Texts that try to talk to the judge: what is unseen in them, what gives them away, and a suite of them."""
