"""git plumbing for the store: notes, trees and the repository's refs."""
