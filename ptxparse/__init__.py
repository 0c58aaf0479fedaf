"""PTX text to module, control flow, access programs and counts. Pure Python; knows no driver."""
