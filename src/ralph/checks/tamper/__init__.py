"""What an agent did to the tests and to what checks it. Pure: two trees in, findings out."""
