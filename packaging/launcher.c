// bin/skein of an archive: starts libexec/skein under a C library that is new enough.
//
// The system's, where it has all symbol versions that the program and its libraries need: then the
// kernel starts the program as any other. Otherwise the one in lib/skein/glibc, by naming its loader:
//
//   ld-linux-x86-64.so.2 --library-path FOLDERS --argv0 NAME libexec/skein ARGUMENTS
//
// FOLDERS are the archive's own, then LD_LIBRARY_PATH (which the option replaces), then where systems
// keep the libraries of a GPU's driver. Those are built for older C libraries, and load into a newer
// one. Nothing is put into the environment, so programs that this one starts find their own libraries.
//
// Static, since it runs before any library is chosen. Compiled by packaging/stage.sh, which defines
// NEEDS ("GLIBC_2.36"), LOADER ("/lib64/ld-linux-x86-64.so.2") and TRIPLET ("x86_64-linux-gnu").
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char kChoice[] = "SKEIN_C_LIBRARY";

// One line on standard error of up to five parts.
static void say(const char* a, const char* b, const char* c, const char* d, const char* e) {
  const char* parts[] = {"skein: ", a, b, c, d, e, "\n"};
  char line[4 * PATH_MAX] = "";
  size_t size = 0;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    const size_t more = strlen(parts[i]);
    if (size + more > sizeof(line)) break;
    memcpy(line + size, parts[i], more);
    size += more;
  }
  if (write(STDERR_FILENO, line, size) < 0) _exit(1);
}

// `folder`/`name`, which the caller owns.
static char* join(const char* folder, const char* name) {
  char* path = malloc(strlen(folder) + strlen(name) + 2);
  if (path == NULL) _exit(1);
  return strcat(strcat(strcpy(path, folder), "/"), name);
}

static void cut_last_name(char* path) {
  char* slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
}

// The folder that bin/ lies in. Where there is no /proc, by the name that was executed.
static const char* find_root(void) {
  static char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (size > 0) {
    path[size] = '\0';
  } else {
    const char* executed = (const char*)getauxval(AT_EXECFN);
    if (executed == NULL || realpath(executed, path) == NULL) return NULL;
  }
  cut_last_name(path);
  cut_last_name(path);
  return path;
}

// Whether the file holds `text` with a NUL before and after it, as a table of strings does.
static int holds(const char* file, const char* text) {
  struct stat status;
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status) != 0 || status.st_size <= 0) return 0;
  const size_t size = (size_t)status.st_size, length = strlen(text);
  const char* bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED) return 0;
  int found = 0;
  const char* at = bytes;
  while (!found && (at = memmem(at, size - (size_t)(at - bytes), text, length + 1)) != NULL) {
    found = at > bytes && at[-1] == '\0';
    ++at;
  }
  munmap((void*)bytes, size);
  return found;
}

// The C library beside the loader that the program would be started by.
static int system_is_new_enough(void) {
  char path[PATH_MAX];
  if (realpath(LOADER, path) == NULL) return 0;
  cut_last_name(path);
  char* library = join(path, "libc.so.6");
  const int found = holds(library, NEEDS);
  free(library);
  return found;
}

static char* library_path(const char* glibc, const char* libraries) {
  const char* given = getenv("LD_LIBRARY_PATH");
  if (given == NULL) given = "";
  const char* folders[] = {glibc,
                           libraries,
                           given,
                           "/usr/lib64",
                           "/usr/lib/" TRIPLET,
                           "/usr/local/nvidia/lib64",
                           "/usr/local/nvidia/lib",
                           "/usr/lib/wsl/lib"};
  const size_t num_folders = sizeof(folders) / sizeof(folders[0]);
  size_t size = 1;
  for (size_t i = 0; i < num_folders; ++i) size += strlen(folders[i]) + 1;
  char* path = calloc(size, 1);
  if (path == NULL) _exit(1);
  for (size_t i = 0; i < num_folders; ++i) {
    if (folders[i][0] == '\0') continue;
    if (path[0] != '\0') strcat(path, ":");
    strcat(path, folders[i]);
  }
  return path;
}

static int run_under_own(const char* root, char* program, int argc, char** argv) {
  char* glibc = join(root, "lib/skein/glibc");
  char* loader = join(glibc, strrchr(LOADER, '/') + 1);
  if (access(loader, X_OK) != 0) {
    say("the C library of this system is older than ", NEEDS, ", and ", loader,
        ", which takes its place, is missing: unpack the whole archive");
    return 1;
  }
  if (strpbrk(root, ":;") != NULL) {
    say(root, ": the loader cannot take a folder whose name holds ':' or ';': unpack the archive ",
        "elsewhere", "", "");
    return 1;
  }
  char** words = calloc((size_t)argc + 7, sizeof(char*));
  if (words == NULL) return 1;
  char* options[] = {loader,
                     "--library-path",
                     library_path(glibc, join(root, "lib/skein")),
                     "--argv0",
                     argc > 0 ? argv[0] : "skein",
                     program};
  const size_t num_options = sizeof(options) / sizeof(options[0]);
  memcpy(words, options, sizeof(options));
  for (int i = 1; i < argc; ++i) words[num_options + (size_t)i - 1] = argv[i];
  execv(loader, words);
  say("cannot start ", loader, "", "", "");
  return 1;
}

int main(int argc, char** argv) {
  const char* root = find_root();
  if (root == NULL) {
    say("cannot tell where this program lies: start it by its whole path", "", "", "", "");
    return 1;
  }
  char* program = join(root, "libexec/skein");
  if (access(program, X_OK) != 0) {
    say(program, " is missing: unpack the whole archive", "", "", "");
    return 1;
  }
  const char* choice = getenv(kChoice);
  if (choice == NULL || choice[0] == '\0') choice = system_is_new_enough() ? "system" : "own";
  if (strcmp(choice, "own") == 0) return run_under_own(root, program, argc, argv);
  if (strcmp(choice, "system") != 0) {
    say(kChoice, "=", choice, ": own or system is expected", "");
    return 2;
  }
  execv(program, argv);
  say("cannot start ", program, " with the C library of this system", "", "");
  return 1;
}
