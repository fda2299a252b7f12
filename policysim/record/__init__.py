"""The decision record: what `policysim choose` found, on one page that people sign.

citations  each policy of the catalogue in words, with the works to cite for it
price      what the chosen policy costs, exactly
methods    the paragraph for a paper
sections   the parts of the page, as text
page       the page
"""
