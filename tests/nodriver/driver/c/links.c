/* Links: what goes in, what comes out, what their logs say, from several threads. Devices are an A100-80G and an L40S. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static char kernel[] = HEAD ".extern .func (.param .b32 r) helper(.param .b32 a);\n"
                            ".visible .entry k(.param .u64 p) { ret; }\n"
                            ".visible .entry uses() {\n"
                            ".reg .b32 %r;\n.param .b32 a, r;\nst.param.b32 [a], 1;\ncall (r), helper, (a);\nret;\n}\n";
static char helper[] = HEAD ".visible .func (.param .b32 r) helper(.param .b32 a) { ret; }\n";
static char broken[] = HEAD ".visible .entry k( { ret; }\n";

static void one_text(void) {
  CUlinkState link;
  void *image, *again;
  size_t size, length = strlen(helper);
  OK(cuLinkCreate(0, NULL, NULL, &link));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(link, &image, &size)); /* there is nothing in it */
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, helper, length, "helper", 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(link, NULL, &size));
  OK(cuLinkComplete(link, &image, &size));
  CHECK(size == length + 1 && !memcmp(image, helper, size));
  OK(cuLinkComplete(link, &again, NULL));
  CHECK(again == image);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(link, CU_JIT_INPUT_PTX, helper, length, NULL, 0, NULL, NULL));
  OK(cuLinkDestroy(link));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(NULL));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(link, &image, &size));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkAddData(link, CU_JIT_INPUT_PTX, helper, length, NULL, 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/dev/null", 0, NULL, NULL));
}

static void several_texts(void) {
  CUlinkState link;
  void *image;
  size_t size;
  OK(cuLinkCreate(0, NULL, NULL, &link));
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, kernel, sizeof kernel, NULL, 0, NULL, NULL));
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, helper, sizeof helper, NULL, 0, NULL, NULL));
  OK(cuLinkComplete(link, &image, &size));
  CHECK(size == strlen(image) + 1 && strstr(image, ".entry k") && !strstr(image, ".extern"));
  OK(cuLinkDestroy(link));
}

static void logs(void) {
  char error[200], info[200];
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME, CU_JIT_TARGET,
                            CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_LOG_VERBOSE};
  void *values[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)-1, (void *)CU_TARGET_COMPUTE_80,
                    (void *)3, (void *)1};
  CUlinkState link;
  void *image;
  memset(error, 'x', sizeof error);
  OK(cuLinkCreate(8, options, values, &link));
  CHECK(!*error && !values[3] && !values[4]);
  GIVES(CUDA_ERROR_INVALID_PTX, cuLinkAddData(link, CU_JIT_INPUT_PTX, broken, sizeof broken, "one", 0, NULL, NULL));
  CHECK(!strncmp(error, "one: module: PTX:4:20: ", 23) && (size_t)values[3] == strlen(error) && !*info && !values[1]);
  uint32_t bits = (uint32_t)(uintptr_t)values[4];
  float milliseconds;
  memcpy(&milliseconds, &bits, sizeof bits);
  CHECK(milliseconds > 0 && milliseconds < 60000);
  size_t before = strlen(error);
  OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, kernel, sizeof kernel, "two", 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_PTX, cuLinkComplete(link, &image, NULL));
  CHECK(!strcmp(error + before, "undefined reference to 'helper'\n") && (size_t)values[3] == strlen(error));
  OK(cuLinkDestroy(link));
}

static void short_logs(void) {
  char log[12];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  for (size_t size = 0; size < 10; size++) {
    void *values[] = {(void *)size, log};
    CUlinkState link;
    memset(log, 'x', sizeof log);
    OK(cuLinkCreate(2, options, values, &link));
    for (int n = 0; n < 3; n++)
      GIVES(CUDA_ERROR_INVALID_PTX, cuLinkAddData(link, CU_JIT_INPUT_PTX, broken, sizeof broken, "one", 0, NULL, NULL));
    CHECK(log[size] == 'x' && (!size || !log[size - 1]) && (size_t)values[0] == (size ? size - 1 : 0));
    OK(cuLinkDestroy(link));
  }
}

static void options_that_are_refused(void) {
  static const struct {
    CUjit_option option;
    size_t value;
    CUresult result, of_input;
  } cases[] = {
      {CU_JIT_OPTIMIZATION_LEVEL, 4, CUDA_SUCCESS, CUDA_SUCCESS},
      {CU_JIT_OPTIMIZATION_LEVEL, 5, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_CACHE_MODE, 3, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_TARGET, CU_TARGET_COMPUTE_90A, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_TARGET, 7, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_TARGET_FROM_CUCONTEXT, 0, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_WALL_TIME, 0, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_ERROR_LOG_BUFFER, 0, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_FALLBACK_STRATEGY, CU_PREFER_PTX, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS},
      {CU_JIT_FALLBACK_STRATEGY, 2, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
      {CU_JIT_GLOBAL_SYMBOL_COUNT, 1, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED},
      {CU_JIT_LTO, 1, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED},
      {CU_JIT_NUM_OPTIONS, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
      {(CUjit_option)-1, 0, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
  };
  CUlinkState link, plain;
  CUjit_option both[] = {CU_JIT_TARGET, CU_JIT_THREADS_PER_BLOCK};
  void *values[] = {(void *)CU_TARGET_COMPUTE_80, (void *)128};
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(2, both, values, &link));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(2, both, NULL, &link));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(2, NULL, values, &link));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(0, NULL, NULL, NULL));
  OK(cuLinkCreate(0, NULL, NULL, &plain));
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    CUjit_option option = cases[n].option;
    void *value = (void *)cases[n].value;
    CUresult result = cuLinkCreate(1, &option, &value, &link);
    if (result != cases[n].result) fprintf(stderr, "case %zu of links gives %d\n", n, result);
    CHECK(result == cases[n].result);
    if (result == CUDA_SUCCESS) OK(cuLinkDestroy(link));
    value = (void *)cases[n].value;
    result = cuLinkAddData(plain, CU_JIT_INPUT_PTX, helper, sizeof helper, NULL, 1, &option, &value);
    if (result != cases[n].of_input) fprintf(stderr, "case %zu of inputs gives %d\n", n, result);
    CHECK(result == cases[n].of_input);
  }
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(plain, CU_JIT_INPUT_PTX, NULL, 10, NULL, 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(plain, CU_JIT_INPUT_PTX, helper, 0, NULL, 0, NULL, NULL));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLinkAddData(plain, CU_JIT_NUM_INPUT_TYPES, helper, 9, NULL, 0, NULL, NULL));
  OK(cuLinkDestroy(plain));
}

/* Containers with something changed give an error or a text, and nothing is read that they do not have. */
static void damaged_containers(void) {
  struct {
    unsigned magic;
    unsigned short version, header;
    unsigned long long bytes;
    unsigned short kind, of;
    unsigned header_bytes;
    unsigned long long payload;
    unsigned packed, options, ptx, target, name, name_bytes;
    unsigned long long flags, reserved, unpacked;
    char text[sizeof helper];
  } good = {.magic = 0xba55ed50, .version = 1, .header = 16, .bytes = sizeof good - 16, .kind = 1, .of = 0x101,
            .header_bytes = 64, .payload = sizeof good - 80, .target = 80, .flags = 0x11};
  memcpy(good.text, helper, sizeof helper);
  int standard_error = dup(2), nowhere = open("/dev/null", O_WRONLY);
  CHECK(standard_error >= 0 && nowhere >= 0 && dup2(nowhere, 2) == 2);
  uint64_t random = 1;
  unsigned taken = 0;
  for (int n = 0; n < 600; n++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    size_t size = n % 4 ? sizeof good : (size_t)(random >> 40) % sizeof good + 1;
    unsigned char *image = malloc(size); /* of its own, so that sanitizers see its end */
    memcpy(image, &good, size);
    size_t at = (random >> 33) % 80;
    if (n && at < size) image[at] = (unsigned char)(random >> 56);
    CUlinkState link;
    OK(cuLinkCreate(0, NULL, NULL, &link));
    taken += cuLinkAddData(link, CU_JIT_INPUT_FATBINARY, image, size, NULL, 0, NULL, NULL) == CUDA_SUCCESS;
    OK(cuLinkDestroy(link));
    free(image);
  }
  CHECK(dup2(standard_error, 2) == 2);
  close(standard_error);
  close(nowhere);
  CHECK(taken > 10 && taken < 590);
}

static void *in_a_thread(void *given) {
  OK(cuCtxSetCurrent(given));
  for (int n = 0; n < 20; n++) {
    one_text();
    several_texts();
  }
  return NULL;
}

int main(void) {
  CUcontext context;
  CUlinkState link;
  GIVES(CUDA_ERROR_NOT_INITIALIZED, cuLinkCreate(0, NULL, NULL, &link));
  OK(cuInit(0));
  GIVES(CUDA_ERROR_INVALID_CONTEXT, cuLinkCreate(0, NULL, NULL, &link));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  one_text();
  several_texts();
  logs();
  short_logs();
  options_that_are_refused();
  damaged_containers();
  pthread_t threads[4];
  for (int n = 0; n < 4; n++) CHECK(!pthread_create(&threads[n], NULL, in_a_thread, context));
  for (int n = 0; n < 4; n++) CHECK(!pthread_join(threads[n], NULL));
  OK(cuCtxDestroy(context));
  return 0;
}
