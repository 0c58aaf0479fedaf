/* A driver with one private table, whose identity is invented, and a function that no header has. */
#include <cuda.h>
#include <string.h>

static const unsigned char INVENTED[16] = "an invented one";
static const char *const table[] = {"what stands in it"};

CUresult cuGetExportTable(const void **answer, const CUuuid *id) {
  if (!answer || !id) return CUDA_ERROR_INVALID_VALUE;
  *answer = memcmp(id->bytes, INVENTED, sizeof INVENTED) ? NULL : table;
  return *answer ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

int cuInventedFunction(void);
int cuInventedFunction(void) { return 12321; }
