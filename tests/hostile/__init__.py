"""Files that were made to do harm, and a run of the commands over them within bounds of memory and time."""
