"""From an analysed kernel to LLVM IR: values and masks, control flow, memory, exchange between lanes."""
