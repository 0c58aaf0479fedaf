/* Managed memory: what the program has said about it. */
#ifndef SOFTGPU_MANAGED_H
#define SOFTGPU_MANAGED_H

struct managed;
void managed_end(struct managed *managed);

#endif
