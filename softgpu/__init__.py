"""The software GPU: ``reference`` executes PTX slowly and literally, ``engine`` compiles it to native code."""
