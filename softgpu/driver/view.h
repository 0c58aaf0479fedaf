/* What kernels may access, as the engine wants to have it. */
#ifndef SOFTGPU_VIEW_H
#define SOFTGPU_VIEW_H

#include "api.h"
#include "softgpu_engine.h"

/* Never changes. What is in it stays mapped as long as anybody has a reference. */
struct view {
  size_t count;
  struct sg_allocation *table; /* for sg_launch: sorted, disjoint */
};

/* What kernels of a context, which is on `device`, may access now; a reference, to be given back when they have ended.
 * It is made anew only if something has changed. */
CUresult allocations_table(CUcontext context, unsigned long long id, CUdevice device, struct view **view);
void view_release(struct view *view);

/* No view is kept for later: for memory that is given back, and when a context ends. */
void views_forget(void);

#endif
