"""The process runtime beyond what every runtime promises."""
