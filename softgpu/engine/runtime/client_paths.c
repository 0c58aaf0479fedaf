/* Folders and files, by the rules of tessera/private.py and softgpu/engine/service/paths.py. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

void sg_say(struct sg_failure *failure, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure->text, sizeof failure->text, format, arguments);
  va_end(arguments);
}

int64_t sg_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Build a path; -1 if it is too long. */
__attribute__((format(printf, 2, 3))) static int path_of(char path[SG_PATH_BYTES], const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(path, SG_PATH_BYTES, format, arguments);
  va_end(arguments);
  return length > 0 && length < SG_PATH_BYTES ? 0 : -1;
}

static const char *absolute(const char *variable) {
  const char *text = getenv(variable);
  return text && text[0] == '/' ? text : 0;
}

static struct sg_engine_info info;
static struct sg_failure info_failure;
static pthread_once_t info_once = PTHREAD_ONCE_INIT;

static int read_info(const char *path) {
  FILE *file = fopen(path, "re");
  char line[SG_PATH_BYTES + 16];
  if (!file)
    return -1;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "engine ", 7) && strlen(line + 7) == SG_ENGINE_HEX)
      memcpy(info.version, line + 7, SG_ENGINE_HEX + 1);
    else if (!strncmp(line, "python /", 8))
      path_of(info.python, "%s", line + 7);
  }
  fclose(file);
  return info.version[0] ? 0 : -1;
}

static void find_info(void) {
  Dl_info library;
  char folder[SG_PATH_BYTES], path[SG_PATH_BYTES];
  if (!dladdr((void *)&info, &library) || !realpath(library.dli_fname, folder)) {
    sg_say(&info_failure, "the library of the software GPU does not find itself: %s", strerror(errno));
    return;
  }
  *strrchr(folder, '/') = 0;
  if (path_of(path, "%s/engine-info", folder) || read_info(path) || !realpath(path, folder)) {
    sg_say(&info_failure, "%s is missing or damaged: build Tessera again", path);
    return;
  }
  *strrchr(folder, '/') = 0; /* of the file itself: builds for tests have a link to it */
  if (path_of(path, "%s/../..", folder) || !realpath(path, info.root))
    info.root[0] = 0;
  /* A package that was built elsewhere: the interpreter of the installation that it is in now. */
  if (access(info.python, X_OK) && path_of(info.python, "%s/../../../bin/python3", info.root))
    info.python[0] = 0;
}

const struct sg_engine_info *sg_engine(struct sg_failure *failure) {
  pthread_once(&info_once, find_info);
  if (info_failure.text[0]) {
    *failure = info_failure;
    return 0;
  }
  return &info;
}

int sg_is_private(const char *folder) {
  struct stat found;
  return !stat(folder, &found) && S_ISDIR(found.st_mode) && found.st_uid == geteuid() && !(found.st_mode & 022);
}

int sg_cache_folder(char folder[SG_PATH_BYTES], struct sg_failure *failure) {
  const char *named = absolute("SOFTGPU_CACHE"), *base = absolute("XDG_CACHE_HOME"), *home = absolute("HOME");
  int made;
  if (named) {
    made = path_of(folder, "%s", named);
  } else if (base) {
    made = path_of(folder, "%s/tessera/softgpu", base);
  } else {
    char buffer[4096];
    struct passwd entry, *user = 0;
    if (!home && !getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &user) && user)
      home = entry.pw_dir;
    made = home ? path_of(folder, "%s/.cache/tessera/softgpu", home) : -1;
  }
  if (made)
    sg_say(failure, "there is no folder for compiled kernels: set SOFTGPU_CACHE");
  return made;
}

int sg_runtime_folder(char folder[SG_PATH_BYTES], struct sg_failure *failure) {
  const char *base = absolute("XDG_RUNTIME_DIR"), *temporary = absolute("TMPDIR");
  int made;
  if (base && !access(base, W_OK | X_OK))
    made = path_of(folder, "%s/tessera", base);
  else
    made = path_of(folder, "%s/tessera-%u", temporary && !access(temporary, W_OK | X_OK) ? temporary : "/tmp",
                   (unsigned)geteuid());
  if (!made && mkdir(folder, 0700) && errno != EEXIST) {
    sg_say(failure, "%s cannot be made: %s", folder, strerror(errno));
    return -1;
  }
  if (made || !sg_is_private(folder)) {
    sg_say(failure, "%s must be a folder of this user that nobody else can write to", folder);
    return -1;
  }
  return 0;
}

int sg_service_paths(const char *version, struct sg_service_paths *paths, struct sg_failure *failure) {
  char folder[SG_PATH_BYTES];
  if (sg_runtime_folder(folder, failure))
    return -1;
  const int made = path_of(paths->socket, "%s/softgpu-%.16s.sock", folder, version) |
         path_of(paths->log, "%s/softgpu-%.16s.log", folder, version) |
         path_of(paths->turn, "%s/softgpu-%.16s.starting", folder, version);
  if (made || strlen(paths->socket) >= sizeof((struct sockaddr_un *)0)->sun_path) {
    sg_say(failure, "the path of the compile service's socket is too long, in %s", folder);
    return -1;
  }
  return 0;
}
