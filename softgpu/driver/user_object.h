/* Objects of the program that end when nobody has a reference to them any more. */
#ifndef SOFTGPU_USER_OBJECT_H
#define SOFTGPU_USER_OBJECT_H

#include <stdbool.h>

/* Those that a graph has. */
struct user_references;

bool user_references_copy(const struct user_references *from, struct user_references **to); /* false: no memory */
void user_references_end(struct user_references *references);

#endif
