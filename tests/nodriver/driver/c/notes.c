/* What the driver writes on standard error, kept for programs: iterators, limits, functions that are told of it. */
#include <unistd.h>

#include "check.h"

enum { KEPT = 50 };

static const char LOST[] = "softgpu: older lines are lost\n";

/* A line about a number. */
static void cause(int number) {
  char text[80];
  CUmodule module;
  snprintf(text, sizeof text, ".version 10.%d\n.target sm_50\n.address_size 64\n", number);
  GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, cuModuleLoadData(&module, text));
}

static int holds(const char *text, int number) {
  char part[40];
  snprintf(part, sizeof part, "PTX of version 10.%d is newer", number);
  return strstr(text, part) != NULL;
}

static int lines_of(const char *text) {
  int count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

static char all[30000];

static size_t dump(CUlogIterator *iterator) {
  size_t size = sizeof all;
  OK(cuLogsDumpToMemory(iterator, all, &size, 0));
  CHECK(strlen(all) == size);
  return size;
}

static void iterators(void) {
  CUlogIterator here, none;
  OK(cuLogsCurrent(&here, 0));
  CHECK(here == 0 && dump(NULL) == 0);
  cause(1);
  cause(2);
  OK(cuLogsCurrent(&none, 0));
  CHECK(dump(&none) == 0);
  dump(NULL);
  CHECK(holds(all, 1) && holds(all, 2) && lines_of(all) == 2 && !strncmp(all, "softgpu: ", 9));
  dump(&here);
  CHECK(lines_of(all) == 2 && here == none);
  cause(3);
  dump(&here);
  CHECK(lines_of(all) == 1 && holds(all, 3) && dump(&here) == 0);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(&here, 1));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(NULL, 0));
  size_t size = sizeof all;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&here, NULL, &size, 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&here, all, &size, 1));
  here = 1000;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&here, all, &size, 0));
}

/* Of what does not fit the last lines are kept. */
static void limits(void) {
  CUlogIterator first = 0;
  for (int n = 4; n < 4 + KEPT; n++) cause(n);
  dump(&first);
  CHECK(!strncmp(all, LOST, strlen(LOST)) && lines_of(all) == 1 + KEPT && !holds(all, 3) && holds(all, 4));
  dump(NULL);
  CHECK(lines_of(all) == KEPT);
  for (size_t room = 0; room < 1000; room++) {
    char small[1001];
    size_t size = room;
    memset(small, 'x', sizeof small);
    CUresult result = cuLogsDumpToMemory(NULL, small, &size, 0);
    CHECK(small[room] == 'x');
    if (result == CUDA_SUCCESS) {
      CHECK(size < room && strlen(small) == size && holds(small, 3 + KEPT) && strstr(small, "left out"));
    } else {
      CHECK(result == CUDA_ERROR_INVALID_VALUE && room < 200);
    }
  }
}

static void files(void) {
  char path[] = "/tmp/softgpu-notes-XXXXXX", text[2000];
  int file = mkstemp(path);
  CHECK(file >= 0);
  CUlogIterator here;
  OK(cuLogsCurrent(&here, 0));
  cause(100);
  OK(cuLogsDumpToFile(&here, path, 0));
  ssize_t length = read(file, text, sizeof text - 1);
  CHECK(length > 0);
  text[length] = 0;
  CHECK(holds(text, 100) && lines_of(text) == 1);
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, "/nowhere/at/all", 0));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, NULL, 0));
  close(file);
  unlink(path);
}

static int told, called;

static void listen(void *given, CUlogLevel level, char *message, size_t length) {
  int count;
  CHECK(level == CU_LOG_LEVEL_ERROR && strlen(message) == length && !strchr(message, '\n'));
  CHECK(holds(message, 200) || holds(message, 201));
  *(int *)given += 1;
  called++;
  message[0] = 'x';
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuDeviceGetCount(&count)); /* locks may be held */
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuLogsRegisterCallback(listen, given, NULL));
  GIVES(CUDA_ERROR_NOT_PERMITTED, cuLogsUnregisterCallback(NULL));
}

static void listeners(void) {
  CUlogsCallbackHandle first;
  int count, other = 0;
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(NULL, &told, &first));
  OK(cuLogsRegisterCallback(listen, &told, &first));
  OK(cuLogsRegisterCallback(listen, &other, NULL));
  cause(200);
  CHECK(told == 1 && other == 1);
  OK(cuDeviceGetCount(&count));
  OK(cuLogsUnregisterCallback(first));
  GIVES(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(first));
  cause(201);
  CHECK(told == 1 && other == 2 && called == 3);
}

int main(void) {
  CUcontext context;
  OK(cuInit(0));
  OK(cuCtxCreate(&context, NULL, 0, 0));
  iterators();
  limits();
  files();
  listeners();
  return 0;
}
