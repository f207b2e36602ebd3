"""Inner loops on plain, trusted arrays. Nothing here checks its input; everything here releases the GIL."""
