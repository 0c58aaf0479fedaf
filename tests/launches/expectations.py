"""What the analysis must find out about named kernels: which are deterministic, which are device-invariant.

``MIRRORABLE`` kernels are both: plain and integer arithmetic, moves, correctly rounded floating point, no choice of a
contraction left to the assembler (an un-suffixed product that feeds an un-suffixed sum), atomics only where they
commute exactly and nobody looks at the value that was there. Names are those of the registry.
"""

from __future__ import annotations


def _names(stem: str, kernels: str) -> list[str]:
    return [f"{stem}:{kernel}" for kernel in kernels.split()]


MIRRORABLE = frozenset([
    *_names("elementwise",
        "scale fill_exact add_2d add_3d saxpy_stride relu_unrolled reverse reverse_in_place copy_pitched "
            "add_float4 narrow_int4 scale_vector_tail axpy_f64"),
    *_names("division", "divide_by_constant divide_by_constant_signed divide_by_power divide_by_value "
            "divide_by_value_signed divide_by_value_64 permute_4d im2col hash_gather hash_remainder wrap_16 ring_copy"),
    *_names("structs", "struct_scale struct_concat struct_strided_gather struct_small"),
    *_names("halves", "axpy_half2 dot_int8 dot_uint8"),
    *_names("rope", "select_of_four concatenate"),
    *_names("matmul",
        "transpose_naive transpose_shared matmul_naive matmul_tiled matmul_blocked matmul_batched matmul_int "
            "triangular_solve_row"),
    *_names("rows", "argmax_block select_largest gemv_warp"),
    *_names("reduce", "sum_blocks_f64 histogram scan_rows scan_tree segment_extent"),
    *_names("gather", "embedding gather_int32 cache_write cache_write_at sparse_rows two_level bisect"),
    *_names("tensor", "async_pipeline async_zero_fill"),
    *_names("sync", "barrier_votes barrier_named tiles_of_eight"),
    *_names("warp", "shuffles shuffle_wide matches redux shuffle_partial"),
    *_names("memory", "constant_weights local_array local_sort dynamic_shared"),
    *_names("control", "switch_dense early_exit while_data until_zero loop_down loop_triangle loop_step loop_double "
            "loop_pointers block_3d assembly_scopes stencil"),
    *_names("bits", "bit_functions wide_multiply signed_arithmetic shifts narrow_arithmetic"),
    *_names("math", "rounded conversions doubles polynomial"),
    *_names("hand_renderer", "E_scale_rows r_sum_rows"),
    *_names("hand_blocks", "scale_block sum_block"),
    *_names("hand_forms", "jump_table"),
    *_names("nvcc_k01_saxpy_sm80", "saxpy saxpy_gs add_vec4"),
    *_names("nvcc_k02_sgemm_sm80", "sgemm_tiled sgemm_rb"),
    *_names("nvcc_k06_paged_sm80", "kv_write"),
    *_names("nvcc_k07_embed_sm80", "embed transpose32"),
    *_names("triton_add_kernel_sm80", "add_kernel"),
    *_names("numba_saxpy_sm80", "saxpy"),
    *_names("numba_mm_sm80", "mm"),
    "tinygrad_ptx_E_4_8_16_4_sm80:E_4_8_16_4", "tinygrad_ptx_r_2_4_28start_pos2B129_sm80:r_2_4_28start_pos2B129",
    "tinygrad_cuda_E_4_8_16_4_sm80:E_4_8_16_4", "tinygrad_cuda_r_2_4_28start_pos2B129_sm80:r_2_4_28start_pos2B129",
])
"""Deterministic and device-invariant."""

UNORDERED = frozenset([
    *_names("reduce", "dot_atomic"),
    *_names("gather", "scatter_add"),
    *_names("atomics", "atomics_float atomics_ticket atomics_exchange"),
    *_names("warp", "compact"),
    *_names("memory", "clocks"),
    *_names("nvcc_k08_argmax_sm80", "hist"),
    *_names("nvcc_k15_coop_sm80", "cg_reduce cg_coalesced"),
    *_names("numba_red_sm80", "red"),
])
"""Never deterministic: the order of blocks, or the clock, shows in the result."""

DEVICE_DEPENDENT = frozenset([
    *_names("halves", "half_functions"),
    *_names("rope", "rope_angles"),
    *_names("rows", "softmax_block softmax_of_warp layernorm rmsnorm_bfloat162 silu_gate"),
    *_names("tensor", "mma_f16 mma_bf16 mma_tf32 ldmatrix_f16 wmma_half wmma_bfloat16"),
    *_names("math", "approximate"),
    *_names("nvcc_k03_softmax_sm80", "softmax_row softmax_warp"),
    *_names("nvcc_k14_mma_sm80", "wmma_gemm hgemm_cpasync"),
    *_names("triton_softmax_kernel_sm80", "softmax_kernel"),
    *_names("triton_matmul_kernel_sm80", "matmul_kernel"),
])
"""Never device-invariant: approximate functions or tensor cores."""

OPAQUE = {
    **dict.fromkeys(_names("bulk_sm90", "bulk_copy bulk_store"), "bulk_copy"),
    "calls:call_recursive": "recursive_call",
    **dict.fromkeys(_names("calls", "call_table call_table_divergent"), "indirect_call"),
    "hand_forms:call_prototype": "indirect_call",
    "nvcc_k12_devglobal_sm80:use_indirect_call": "indirect_call",
    "triton_tma_matmul_sm90:tma_matmul": "tensor_map",
    **dict.fromkeys([
        *_names("gather", "pointer_table list_sum"), *_names("memory", "global_pointer global_pointer_constant"),
        "hand_forms:initialised", "nvcc_k06_paged_sm80:batched_ptr_axpy", "nvcc_k12_devglobal_sm80:use_globals",
    ], "pointer_from_memory"),
    # The pointer is an element of a struct passed by value whose index only the launch knows.
    "structs:struct_pointer_array": "pointer_from_memory",
}
"""Kernels about which nothing bounded can be said, and why. No other kernel with launches is opaque."""

PINNED = {
    "atomics:atomics_scopes": {"system_scope"},
    "calls:print_values": {"device_printf", "pointer_escapes"},
    "calls:assert_positive": {"device_assert", "pointer_escapes"},
    "hand_forms:call_prototype": {"pointer_escapes"},
    "reduce:sum_last_block": {"volatile_access"},
    "sync:chain_scan": {"volatile_access"},
    "sync:grid_reverse": {"grid_sync", "acquire_in_loop"},
    "sync:hand_over": {"acquire_in_loop"},
    "nvcc_k08_argmax_sm80:lastblock": {"volatile_access"},
    "nvcc_k12_devglobal_sm80:use_printf_assert": {"device_printf", "pointer_escapes"},
    "nvcc_k15_coop_sm80:cg_grid": {"grid_sync", "acquire_in_loop"},
}
"""Kernels that talk while they run, or through the driver, or pass on the address of a variable or function of the
module, and must run where they were launched. No others do."""

EXACT = frozenset([
    *_names("elementwise", "scale fill_exact add_2d add_3d saxpy_stride relu_unrolled reverse reverse_in_place "
            "copy_pitched add_float4 narrow_int4 scale_vector_tail axpy_f64 narrow_parameters"),
    *_names("division", "divide_by_constant divide_by_constant_signed divide_by_power divide_by_value "
            "divide_by_value_signed divide_by_value_64 permute_4d"),
    *_names("structs", "struct_scale struct_concat struct_strided_gather struct_wide struct_small"),
    *_names("halves", "axpy_half2 dot_int8 quantise_int8 dequantise_int4"),
    *_names("rope", "rope_select rope_angles select_of_four concatenate"),
    *_names("matmul", "transpose_naive transpose_shared matmul_naive matmul_tiled matmul_blocked matmul_batched "
            "matmul_int triangular_solve_row"),
    *_names("rows", "softmax_block softmax_of_warp layernorm rmsnorm rmsnorm_bfloat162 gemv_warp argmax_block "
            "silu_gate"),
    *_names("reduce", "sum_blocks_f64 scan_rows scan_tree"),
    *_names("tensor", "mma_f16 ldmatrix_f16 wmma_half wmma_bfloat16 async_pipeline async_zero_fill"),
    *_names("control", "loop_down loop_triangle loop_step block_3d stencil"),
    *_names("hand_renderer", "E_scale_rows r_sum_rows"),
    *_names("hand_blocks", "scale_block sum_block"),
    *_names("nvcc_k01_saxpy_sm80", "saxpy saxpy_gs add_vec4"),
    *_names("nvcc_k02_sgemm_sm80", "sgemm_tiled sgemm_rb"),
    *_names("nvcc_k03_softmax_sm80", "softmax_row softmax_warp"),
    *_names("nvcc_k04_norm_sm80", "rmsnorm_f32 rmsnorm_bf16 layernorm_h2"),
    *_names("nvcc_k07_embed_sm80", "transpose32"),
    *_names("nvcc_k10_silu_sm80", "silu_mul gelu_tanh"),
    *_names("nvcc_k14_mma_sm80", "wmma_gemm hgemm_cpasync"),
    "triton_add_kernel_sm80:add_kernel", "triton_softmax_kernel_sm80:softmax_kernel",
    "triton_matmul_kernel_sm80:matmul_kernel", "triton_flash_kernel_sm80:flash_kernel",
    "numba_saxpy_sm80:saxpy", "numba_mm_sm80:mm",
])
"""Evaluated ranges begin and end with the bytes really touched, in every launch: element-wise, transposes, matrix
products, softmax, norms, and what is like them."""
