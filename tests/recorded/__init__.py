"""What people and models got of ten small projects, recorded to the byte."""
