"""What each server of ours says of itself, beside its own routes: what those are, as documents, and how it fares."""
