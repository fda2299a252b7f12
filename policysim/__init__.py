"""What does choosing treatments privately cost the patients?"""
