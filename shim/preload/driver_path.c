/* Where the driver is: the environment says so, or it is looked for where the loader would. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doors.h"

static const char NAME[] = "libcuda.so.1";
static const char USUAL[] = "/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib64:/lib64:/usr/lib:/lib:"
                            "/usr/local/nvidia/lib64:/usr/lib/wsl/lib:/run/opengl-driver/lib";

/* Whether a path names this library itself, by whatever name. */
static bool is_this(const struct stat *file) {
  Dl_info info;
  struct stat own;
  return dladdr((const void *)forms, &info) && info.dli_fname && stat(info.dli_fname, &own) == 0 &&
         own.st_dev == file->st_dev && own.st_ino == file->st_ino;
}

static bool in_folders(const char *folders, char *path, size_t size) {
  for (const char *next = folders; *next;) {
    size_t length = strcspn(next, ":;");
    int made = length ? snprintf(path, size, "%.*s/%s", (int)length, next, NAME) : -1;
    struct stat file;
    if (made > 0 && (size_t)made < size && *path == '/' && stat(path, &file) == 0 && !is_this(&file)) return true;
    next += length + (next[length] != 0);
  }
  return false;
}

bool find_driver(char *path, size_t size) {
  const char *named = getenv("TESSERA_DRIVER");
  if (named && *named) {
    struct stat file;
    int made = snprintf(path, size, "%s", named);
    if (*named == '/' && made > 0 && (size_t)made < size && stat(path, &file) == 0 && !is_this(&file)) return true;
    SAY_ONCE("TESSERA_DRIVER=%s is no absolute path of a driver", named);
    return false;
  }
  const char *folders = getenv("LD_LIBRARY_PATH");
  return (folders && in_folders(folders, path, size)) || in_folders(USUAL, path, size);
}
