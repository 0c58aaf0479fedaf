/* A launch with attributes of several kinds, and one that nobody knows. */
#include "hazard.h"

int main(void) {
  CUfunction function = ready();
  void *pointer = NULL;
  int number = 77;
  void *parameters[] = {&pointer, &pointer, &pointer, &number};
  CUlaunchAttribute attributes[4];
  memset(attributes, 0, sizeof attributes);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = 2;
  attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attributes[1].value.priority = -5;
  attributes[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[2].value.programmaticStreamSerializationAllowed = 1;
  attributes[3].id = (CUlaunchAttributeID)999;
  memset(attributes[3].value.pad, 0x5a, sizeof attributes[3].value.pad);
  CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                           .attrs = attributes, .numAttrs = 4};
  CHECK(cuLaunchKernelEx(&config, function, parameters, NULL));
  return 0;
}
