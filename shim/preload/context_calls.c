/* Contexts that programs make and end. The primary one of a device ends with its last user, or when somebody resets it:
 * then the driver may give the next one the same handle. */
#include "contexts.h"
#include "doors.h"
#include "hooks.h"
#include "streams.h"
#include "things.h"

static CUresult made(CUcontext *context, CUdevice device, bool primary, unsigned function, CUresult result) {
  if (result == CUDA_SUCCESS && context && *context) context_made(*context, device, primary, function);
  return result;
}

CUresult hook_cuCtxCreate(CUcontext *pctx, unsigned flags, CUdevice_v1 dev) {
  if (!recording()) return real.cuCtxCreate(pctx, flags, dev);
  return made(pctx, dev, false, NUMBER_cuCtxCreate, DRIVER(real.cuCtxCreate(pctx, flags, dev)));
}

CUresult hook_cuCtxCreate_v2(CUcontext *pctx, unsigned flags, CUdevice_v1 dev) {
  if (!recording()) return real.cuCtxCreate_v2(pctx, flags, dev);
  return made(pctx, dev, false, NUMBER_cuCtxCreate_v2, DRIVER(real.cuCtxCreate_v2(pctx, flags, dev)));
}

CUresult hook_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int count, unsigned flags,
                             CUdevice_v1 dev) {
  if (!recording()) return real.cuCtxCreate_v3(pctx, params, count, flags, dev);
  return made(pctx, dev, false, NUMBER_cuCtxCreate_v3, DRIVER(real.cuCtxCreate_v3(pctx, params, count, flags, dev)));
}

CUresult hook_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned flags, CUdevice dev) {
  if (!recording()) return real.cuCtxCreate_v4(pctx, params, flags, dev);
  return made(pctx, dev, false, NUMBER_cuCtxCreate_v4, DRIVER(real.cuCtxCreate_v4(pctx, params, flags, dev)));
}

struct context_ending {
  struct ending ending;
  CUcontext context;
  unsigned captures;
};

static struct context_ending begin(CUcontext context, unsigned function) {
  struct context_ending end = {.context = context};
  end.captures = context_end(&end.ending, context, function);
  return end;
}

static CUresult ended(struct context_ending *end, CUresult result) {
  ending_done(&end->ending, result);
  if (result == CUDA_SUCCESS)
    captures_over(end->captures);
  else
    context_again(end->context);
  return result;
}

CUresult hook_cuCtxDestroy(CUcontext ctx) {
  if (!ctx || !recording()) return real.cuCtxDestroy(ctx);
  struct context_ending end = begin(ctx, NUMBER_cuCtxDestroy);
  return ended(&end, real.cuCtxDestroy(ctx));
}

CUresult hook_cuCtxDestroy_v2(CUcontext ctx) {
  if (!ctx || !recording()) return real.cuCtxDestroy_v2(ctx);
  struct context_ending end = begin(ctx, NUMBER_cuCtxDestroy_v2);
  return ended(&end, real.cuCtxDestroy_v2(ctx));
}

CUresult hook_cuCtxAttach(CUcontext *pctx, unsigned flags) {
  if (!recording()) return real.cuCtxAttach(pctx, flags);
  CUresult result = DRIVER(real.cuCtxAttach(pctx, flags));
  if (result != CUDA_SUCCESS || !pctx || !*pctx) return result;
  context_known(*pctx);
  use_begin(WIRE_CONTEXT, number_of(*pctx), number_of(*pctx));
  return result;
}

/* Once for each time it was attached, and then it is destroyed. */
CUresult hook_cuCtxDetach(CUcontext ctx) {
  if (!ctx || !recording()) return real.cuCtxDetach(ctx);
  if (use_end(WIRE_CONTEXT, number_of(ctx)) == USES_UNKNOWN) {
    struct context_ending end = begin(ctx, NUMBER_cuCtxDetach);
    return ended(&end, real.cuCtxDetach(ctx));
  }
  CUresult result = DRIVER(real.cuCtxDetach(ctx));
  if (result != CUDA_SUCCESS) use_begin(WIRE_CONTEXT, number_of(ctx), number_of(ctx));
  return result;
}

CUresult hook_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice_v1 dev) {
  if (!recording()) return real.cuDevicePrimaryCtxRetain(pctx, dev);
  CUresult result = DRIVER(real.cuDevicePrimaryCtxRetain(pctx, dev));
  if (result != CUDA_SUCCESS || !pctx || !*pctx) return result;
  use_begin(WIRE_CONTEXT, (uint64_t)dev, 0);
  return made(pctx, dev, true, NUMBER_cuDevicePrimaryCtxRetain, result);
}

static bool is_there(CUcontext context) { return context && table_find(&session->contexts, number_of(context), 0); }

static bool is_active(CUdevice device) {
  unsigned flags;
  int active = 0;
  return ASK(real.cuDevicePrimaryCtxGetState(device, &flags, &active)) == CUDA_SUCCESS && active;
}

typedef CUresult of_device(CUdevice device);

/* Whoever has retained it without that this library saw it keeps it alive. */
static CUresult release(CUdevice device, of_device *call, unsigned function) {
  CUcontext context = primary_context(device);
  int left = use_end(WIRE_CONTEXT, (uint64_t)device);
  if (!is_there(context) || left > 0) {
    CUresult result = DRIVER(call(device));
    if (result != CUDA_SUCCESS && left >= 0) use_begin(WIRE_CONTEXT, (uint64_t)device, 0);
    return result;
  }
  struct context_ending end = begin(context, function);
  CUresult result = call(device);
  if (result == CUDA_SUCCESS && is_active(device) && primary_context(device) == context &&
      !table_find(&session->uses, (uint64_t)device, WIRE_CONTEXT)) {
    ending_undo(&end.ending);
    context_again(context);
    return result;
  }
  if (result != CUDA_SUCCESS && left >= 0) use_begin(WIRE_CONTEXT, (uint64_t)device, 0);
  return ended(&end, result);
}

CUresult hook_cuDevicePrimaryCtxRelease(CUdevice_v1 dev) {
  if (!recording()) return real.cuDevicePrimaryCtxRelease(dev);
  return release(dev, real.cuDevicePrimaryCtxRelease, NUMBER_cuDevicePrimaryCtxRelease);
}

CUresult hook_cuDevicePrimaryCtxRelease_v2(CUdevice_v1 dev) {
  if (!recording()) return real.cuDevicePrimaryCtxRelease_v2(dev);
  return release(dev, real.cuDevicePrimaryCtxRelease_v2, NUMBER_cuDevicePrimaryCtxRelease_v2);
}

/* It ends whoever uses it, and they still have to release it. */
static CUresult reset(CUdevice device, of_device *call, unsigned function) {
  CUcontext context = primary_context(device);
  if (!is_there(context)) return DRIVER(call(device));
  struct context_ending end = begin(context, function);
  return ended(&end, call(device));
}

CUresult hook_cuDevicePrimaryCtxReset(CUdevice_v1 dev) {
  if (!recording()) return real.cuDevicePrimaryCtxReset(dev);
  return reset(dev, real.cuDevicePrimaryCtxReset, NUMBER_cuDevicePrimaryCtxReset);
}

CUresult hook_cuDevicePrimaryCtxReset_v2(CUdevice_v1 dev) {
  if (!recording()) return real.cuDevicePrimaryCtxReset_v2(dev);
  return reset(dev, real.cuDevicePrimaryCtxReset_v2, NUMBER_cuDevicePrimaryCtxReset_v2);
}
