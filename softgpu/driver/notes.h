/* What a person was told, kept for programs that ask. */
#ifndef SOFTGPU_NOTES_H
#define SOFTGPU_NOTES_H

/* Keep a line, without its line feed, and tell it to those who have asked for that. */
void note(const char *line);

#endif
