"""The software GPU: ``reference`` executes PTX slowly and literally, ``engine`` compiles it to native code, ``driver``
is a CUDA driver over that, which programs find in the environment that ``environment`` makes."""

from softgpu.environ import environment as environment
