"""The decision record: what `policysim choose` found, on one page that people sign.

price      what the chosen policy costs, exactly
methods    the paragraph for a paper
sections   the parts of the page, as text
page       the page
"""
