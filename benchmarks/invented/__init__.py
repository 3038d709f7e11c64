"""What the labelled set is made of: an invented world, pages about it, and claims on the pages."""
