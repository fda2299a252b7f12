"""One decision for each patient of a scenario.

decision_question   policies compared over epsilon, and what a reader needs to choose among them
"""
