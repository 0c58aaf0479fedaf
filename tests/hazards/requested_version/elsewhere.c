/* A driver whose cuGetProcAddress gives other addresses than its symbols have. */
#include <cuda.h>

static CUresult somewhere(void) { return CUDA_SUCCESS; }

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  (void)symbol, (void)version, (void)flags;
  *function = *(void **)&(CUresult(*[1])(void)){somewhere};
  if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
