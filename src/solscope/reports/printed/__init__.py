"""What ncu prints, whatever the page: encodings, number formats, labels, launches.

Text and cells in, nouns out. Shared by the readers of CSV and of text tables; knows no layout.
"""
