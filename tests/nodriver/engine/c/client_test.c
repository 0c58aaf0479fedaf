/* Calls the client as a program would, one verb per run; what it prints is checked by test_client.py.
 *
 *   level                                     the CPU's level
 *   digest FILE                               SHA-256 of a file
 *   file PTX KERNEL X Y Z FLAGS ROUNDING      the cache's file name for a kernel
 *   describes PTX                             the description's file name
 *   cached PTX KERNEL X Y Z FLAGS ROUNDING    whether the cache has it, and the time of a load from there
 *   load PTX KERNEL X Y Z FLAGS ROUNDING      load it, compiled if need be; looks for traces in this process
 *   describe PTX
 *   threads PTX COUNT                         COUNT threads load kernels k0, k1, k0, k1, ...
 *
 * START and ANSWER in the environment are deadlines in milliseconds. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "client_internal.h"

static volatile sig_atomic_t children_ended;

static void on_child(int number) {
  (void)number;
  children_ended++;
}

static int open_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (folder && readdir(folder))
    count++;
  closedir(folder);
  return count;
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static char *ptx;
static size_t ptx_bytes;
static uint8_t digest[SG_DIGEST_BYTES];

static void read_ptx(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(9);
  fseek(file, 0, SEEK_END);
  ptx_bytes = (size_t)ftell(file);
  rewind(file);
  ptx = malloc(ptx_bytes + 1);
  if (fread(ptx, 1, ptx_bytes, file) != ptx_bytes)
    exit(9);
  fclose(file);
  sg_module_digest(ptx, ptx_bytes, digest);
}

static int load(const char *kernel, const struct sg_options *options) {
  struct sg_failure failure = {""};
  struct sg_loaded loaded = {0, 0};
  const int before = open_files();
  const enum sg_answer answer = sg_load_kernel(ptx, ptx_bytes, digest, kernel, options, &loaded, &failure);
  printf("%d %s\n", answer, answer ? failure.text : loaded.kernel->name);
  const int no_child = waitpid(-1, 0, WNOHANG | __WALL) < 0 && errno == ECHILD;
  printf("files %d children %d signals %d\n", open_files() - before, !no_child, (int)children_ended);
  return 0;
}

static int cached(const char *kernel, const struct sg_options *options) {
  char path[SG_PATH_BYTES];
  struct sg_failure failure;
  struct sg_loaded loaded;
  double best = 1e9;
  if (!sg_cached_object(digest, kernel, options, path)) {
    printf("no\n");
    return 0;
  }
  for (int i = 0; i < 20; i++) {
    const double start = microseconds();
    if (sg_load_kernel(ptx, ptx_bytes, digest, kernel, options, &loaded, &failure))
      return 1;
    const double time = microseconds() - start;
    best = time < best ? time : best;
    dlclose(loaded.handle);
  }
  printf("yes %.0f\n", best);
  return 0;
}

static void *load_one(void *name) {
  const struct sg_options options = {{0, 0, 0}, 0, 0};
  struct sg_failure failure;
  struct sg_loaded loaded;
  return sg_load_kernel(ptx, ptx_bytes, digest, name, &options, &loaded, &failure) ? "failed" : 0;
}

static int threads(int count) {
  pthread_t ids[64];
  int failures = 0;
  for (int i = 0; i < count; i++)
    pthread_create(&ids[i], 0, load_one, i % 2 ? "k1" : "k0");
  for (int i = 0; i < count; i++) {
    void *result;
    pthread_join(ids[i], &result);
    failures += result != 0;
  }
  printf("failures %d\n", failures);
  return 0;
}

int main(int count, char **words) {
  struct sg_failure failure;
  char path[SG_PATH_BYTES];
  signal(SIGCHLD, on_child);
  sg_set_deadlines(getenv("START") ? atoi(getenv("START")) : SG_START_MILLISECONDS,
                   getenv("ANSWER") ? atoi(getenv("ANSWER")) : SG_ANSWER_MILLISECONDS);
  if (count < 2)
    return 2;
  const char *verb = words[1];
  if (!strcmp(verb, "level"))
    return puts(sg_target_level() ? sg_target_level() : "none") < 0;
  if (count < 3)
    return 2;
  read_ptx(words[2]);
  if (!strcmp(verb, "digest")) {
    for (int i = 0; i < SG_DIGEST_BYTES; i++)
      printf("%02x", digest[i]);
    return puts("") < 0;
  }
  if (!strcmp(verb, "threads"))
    return threads(atoi(words[3]));
  if (!strcmp(verb, "describe")) {
    char *json = 0;
    size_t bytes = 0;
    const enum sg_answer answer = sg_describe_module(ptx, ptx_bytes, digest, &json, &bytes, &failure);
    printf("%d %s\n", answer, answer ? failure.text : json);
    free(json);
    return 0;
  }
  const struct sg_engine_info *engine = sg_engine(&failure);
  if (!strcmp(verb, "describes"))
    return !engine || sg_description_file(engine, digest, path) || puts(path) < 0;
  if (count < 9)
    return 2;
  const struct sg_options options = {{(uint32_t)atoi(words[4]), (uint32_t)atoi(words[5]), (uint32_t)atoi(words[6])},
                                     (uint32_t)atoi(words[7]), (uint32_t)atoi(words[8])};
  if (!strcmp(verb, "file"))
    return !engine || sg_object_file(engine, digest, words[3], &options, path) || puts(path) < 0;
  if (!strcmp(verb, "cached"))
    return cached(words[3], &options);
  if (!strcmp(verb, "load"))
    return load(words[3], &options);
  return 2;
}
