/* Types of functions whose headers need those of graphics libraries. Nothing is done with them. */
#ifndef SOFTGPU_GRAPHICS_H
#define SOFTGPU_GRAPHICS_H

#include <stdint.h>

typedef unsigned int GLuint, GLenum;
typedef int CUGLDeviceList; /* an enumeration, like the next */
typedef int CUoutput_mode;

typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;
typedef int32_t EGLint;
typedef struct CUeglStreamConnection_st *CUeglStreamConnection;
typedef struct {
  void *planes[3];
  unsigned int words[8];
} CUeglFrame_v1;

typedef uint32_t VdpDevice, VdpOutputSurface, VdpVideoSurface;
typedef void VdpGetProcAddress; /* a function's address is what is given */

#endif
