"""Launch cases: for every kernel of the corpus and of our fixtures, random launches that keep the program in bounds."""
