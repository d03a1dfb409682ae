"""What an agent did to the tests and to what runs them. Pure: two trees in, findings out."""
