#ifndef NULL_DRIVER_H
#define NULL_DRIVER_H

/* The answer of a function that makes something: a handle or an address that was never given before. A CUresult. */
int give(unsigned long long *answer);

#endif
