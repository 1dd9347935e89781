"""What a person sees who does not write Python."""
